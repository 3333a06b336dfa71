"""pytest plugin ``vcr_core``: the contract kit without a test file, and fixtures with toys.

``pytest -p vcr_core.testing.plugin --vcr-contract vcr-acme-models``
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vcr_core.errors import UsageError
from vcr_core.testing.contract import as_param, cases

if TYPE_CHECKING:
    from vcr_core.testing.toys.cnn import ToyCnn
    from vcr_core.testing.toys.linear import LinearClassifier
    from vcr_core.testing.toys.shapes import ShapesDataset

_CASES = Path(__file__).with_name("contract_cases.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit."""
    group = parser.getgroup("vcr_core", "contract checks of vcr components")
    group.addoption(
        "--vcr-contract",
        action="append",
        default=[],
        metavar="DISTRIBUTION",
        help="run the contract checks of this distribution; may be given several times",
    )
    group.addoption(
        "--vcr-expected-failure",
        action="append",
        default=[],
        metavar="ID=REASON",
        help="a check that is expected to fail, as 'kind/check-name:component=reason'",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and collect the cases where ``--vcr-contract`` is given."""
    config.addinivalue_line("markers", "contract: checks that every component has to pass")
    if not config.getoption("vcr_contract"):
        return
    if config.args_source == pytest.Config.ArgsSource.ARGS:
        config.args.append(str(_CASES))
    else:
        config.args[:] = [str(_CASES)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turn the chosen distributions into cases."""
    if "vcr_core_case" not in metafunc.fixturenames:
        return
    config = metafunc.config
    expected = dict(_expected(text) for text in config.getoption("vcr_expected_failure"))
    try:
        found = cases(config.getoption("vcr_contract"), expected_failures=expected)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    metafunc.parametrize("vcr_core_case", [as_param(case) for case in found])


@pytest.fixture
def vcr_core_linear() -> LinearClassifier:
    """Return a linear classifier whose optimal attack is known."""
    from vcr_core.testing.toys.linear import LinearClassifier

    return LinearClassifier()


@pytest.fixture
def vcr_core_cnn() -> ToyCnn:
    """Return a 3-D CNN that classifies :func:`vcr_core_shapes`."""
    from vcr_core.testing.toys.cnn import ToyCnn

    return ToyCnn()


@pytest.fixture
def vcr_core_shapes() -> ShapesDataset:
    """Return the generated dataset of 24 moving shapes."""
    from vcr_core.testing.toys.shapes import ShapesDataset

    return ShapesDataset()


def _expected(text: str) -> tuple[str, str]:
    key, equals, reason = text.partition("=")
    if not equals:
        raise pytest.UsageError(
            f"--vcr-expected-failure {text!r}: write 'kind/check-name:component=reason'"
        )
    return key.strip(), reason.strip()
