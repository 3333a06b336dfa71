"use strict";
(() => {
  const source = document.getElementById("videos-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const form = document.getElementById("drill");
  const shown = form.querySelector("output");
  const table = document.getElementById("video-table");
  const classes = document.getElementById("class-table");
  const pager = document.getElementById("pager");
  const dialog = document.getElementById("video-dialog");
  const PAGE = 50;
  const MISSING = "\u2013";

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const number = (value) => (value == null ? MISSING : String(Number(value.toPrecision(4))));
  const percent = (value) => (100 * value).toFixed(1);
  const dataset = (run) => data.datasets[data.runs[run].dataset];
  const className = (run, label) => (label == null ? MISSING
    : dataset(run).labels[label] ?? `class ${label}`);
  const runName = (run) => form.elements.run.querySelector(`option[value="${run}"]`).textContent;
  // Ranks, so that sorting by name compares numbers.
  const ranks = data.datasets.map(({ labels }) => {
    const order = labels.map((_, i) => i).sort((a, b) => labels[a].localeCompare(labels[b]));
    const rank = [];
    order.forEach((label, i) => { rank[label] = i; });
    return rank;
  });

  // Items are [run, row]; a column says what to sort by and what to show.
  const value = (name) => ([run, row]) => data.runs[run][name]?.[row] ?? null;
  const part = (group, name) => ([run, row]) => data.runs[run][group][name]?.[row] ?? null;
  const video = ([run, row]) => dataset(run).videos[data.runs[run].video[row]];
  const labelOf = value("label");
  const corner = (run, row, found) => {
    if (found === null) return MISSING;
    const [pred, p, , right, draws] = found;
    const text = pred === null ? "abstained"
      : className(run, pred) + (p === null ? "" : ` ${p.toFixed(2)}`);
    const counted = draws ? `${text}, right in ${right} of ${draws}` : text;
    const wrong = pred !== null && pred !== data.runs[run].label[row];
    return make("span", { className: wrong ? "miss" : "", title: wrong ? "not the true class" : "" },
      counted);
  };
  const cornerColumn = (name, title) => ({
    title, number: true, has: name,
    key: (item) => value(name)(item)?.[2] ?? null,
    show: (item) => corner(item[0], item[1], value(name)(item)),
  });
  const numberColumn = (title, get, has) => ({
    title, has, number: true, key: get, show: (item) => number(get(item)),
  });
  const columns = [
    { title: "Video", key: ([run, row]) => data.runs[run].video[row], show: null },
    { title: "Run", several: true, key: ([run]) => run, show: ([run]) => runName(run) },
    { title: "Class", key: (item) => ranks[data.runs[item[0]].dataset][labelOf(item)] ?? labelOf(item),
      show: (item) => className(item[0], labelOf(item)) },
    { title: "Outcome", key: value("outcome"),
      show: (item) => {
        const name = data.outcomes[value("outcome")(item)];
        return make("span", { className: `outcome ${name.replace(" ", "-")}`,
          title: data.meanings[name] ?? "" }, name);
      } },
    { title: "Target", has: "target", key: value("target"),
      show: (item) => className(item[0], value("target")(item)) },
    cornerColumn("clean", "Clean"),
    cornerColumn("attacked", "Attacked"),
    cornerColumn("clean_defended", "Clean, defended"),
    cornerColumn("attacked_defended", "Attacked, defended"),
    numberColumn("Queries", part("costs", "forwards"), "costs.forwards"),
    numberColumn("To first success", part("costs", "queries_to_first_success"),
      "costs.queries_to_first_success"),
    numberColumn("Attack s", part("costs", "t_attack_s"), "costs.t_attack_s"),
    ...data.metrics.map(([name, title]) => numberColumn(title, part("metrics", name), `metrics.${name}`)),
  ];
  const has = (run, path) => path.split(".").reduce((found, key) => found?.[key], data.runs[run]) !== undefined;

  const state = { column: null, order: 1, page: 0, items: [], columns: [] };
  const selected = () => (form.elements.run.value === "all"
    ? data.runs.map((_, run) => run) : [Number(form.elements.run.value)]);

  const head = (titles, sorted, order, onSort) => make("thead", {}, make("tr", {},
    ...titles.map(({ title, number: numeric }, i) => {
      const cell = make("th", { scope: "col", className: numeric ? "num" : "" });
      const button = make("button", { type: "button" }, title);
      button.addEventListener("click", () => onSort(i));
      if (sorted === i) cell.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      cell.append(button);
      return cell;
    })));
  const refocus = (where, i) => where.tHead.rows[0].cells[i].firstChild.focus();
  const byKey = (key, order) => (a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === null || y === null ? (x === null) - (y === null) : order * (x - y);
  };

  const sortBy = (column) => {
    const keys = Float64Array.from(state.items, (item) => column.key(item) ?? NaN);
    const order = Uint32Array.from(keys.keys());
    // Missing values stay at the end in both orders.
    order.sort((a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (x !== x || y !== y) return (x !== x) - (y !== y);
      return state.order * (x - y);
    });
    state.items = Array.from(order, (i) => state.items[i]);
  };
  const onSort = (i) => {
    const column = state.columns[i];
    state.order = state.column === column ? -state.order : column.number ? -1 : 1;
    state.column = column;
    state.page = 0;
    sortBy(column);
    draw();
    refocus(table, i);
  };

  const draw = () => {
    const pages = Math.max(1, Math.ceil(state.items.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    const from = state.page * PAGE;
    const body = make("tbody");
    for (const item of state.items.slice(from, from + PAGE)) {
      body.append(make("tr", {}, ...state.columns.map((column) => {
        if (column.show) {
          return make("td", { className: column.number ? "num" : "" }, column.show(item));
        }
        const button = make("button", { type: "button", className: "link" },
          make("bdi", {}, video(item)));
        button.addEventListener("click", () => details(item));
        return make("th", { scope: "row" }, button);
      })));
    }
    table.replaceChildren(make("caption", { className: "unseen" }, "Videos"),
      head(state.columns, state.columns.indexOf(state.column), state.order, onSort), body);
    const to = Math.min(from + PAGE, state.items.length);
    shown.value = state.items.length ? `${from + 1} to ${to} of ${state.items.length} videos` : "no videos";
    pager.hidden = pages === 1;
    const [back, next] = pager.querySelectorAll("button");
    back.disabled = state.page === 0;
    next.disabled = state.page === pages - 1;
  };

  const update = () => {
    const runs = selected();
    const wanted = form.elements;
    const words = wanted.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [place, label] = wanted.label.value.split(":").map(Number);
    const outcome = wanted.outcome.value === "" ? null : Number(wanted.outcome.value);
    state.columns = columns.filter((column) => (column.several ? runs.length > 1
      : !column.has || runs.some((run) => has(run, column.has))));
    state.items = [];
    for (const run of runs) {
      const found = data.runs[run];
      if (wanted.label.value !== "" && found.dataset !== place) continue;
      found.video.forEach((_, row) => {
        if (wanted.label.value !== "" && found.label[row] !== label) return;
        if (outcome !== null && found.outcome[row] !== outcome) return;
        if (words.length) {
          const id = video([run, row]).toLowerCase();
          if (!words.every((word) => id.includes(word))) return;
        }
        state.items.push([run, row]);
      });
    }
    state.page = 0;
    if (state.columns.includes(state.column)) sortBy(state.column);
    else state.column = null;
    draw();
  };

  const option = (text, value) => make("option", { value }, text);
  const fillChoices = () => {
    const runs = selected();
    const places = [...new Set(runs.map((run) => data.runs[run].dataset))];
    const labels = places.flatMap((place) => {
      const found = new Set(runs.filter((run) => data.runs[run].dataset === place)
        .flatMap((run) => data.runs[run].label.filter((label) => label != null)));
      const { name, labels: names } = data.datasets[place];
      return [...found].sort((a, b) => (ranks[place][a] ?? a) - (ranks[place][b] ?? b))
        .map((label) => option((places.length > 1 ? `${name}: ` : "") +
          (names[label] ?? `class ${label}`), `${place}:${label}`));
    });
    const codes = new Set(runs.flatMap((run) => data.runs[run].outcome));
    const outcomes = data.outcomes.flatMap((name, code) => (codes.has(code)
      ? [option(data.meanings[name] ? `${name}: ${data.meanings[name]}` : name, code)] : []));
    for (const [name, options] of [["label", labels], ["outcome", outcomes]]) {
      const select = form.elements[name];
      const before = select.value;
      select.replaceChildren(option("all", ""), ...options);
      select.value = options.some(({ value }) => value === before) ? before : "";
    }
  };

  const classState = { column: 0, order: 1 };
  const drawClasses = () => {
    const runs = selected();
    document.getElementById("classes").hidden = runs.length !== 1;
    if (runs.length !== 1) return;
    const [run] = runs;
    const { classes: rows, dataset: place, is_attacked: attacked } = data.runs[run];
    const share = (k, n, ends) => (k === null ? MISSING : make("span", {}, percent(k / n),
      make("span", { className: "ci" }, ends ? `[${percent(ends[0])}, ${percent(ends[1])}]` : "")));
    const all = [
      { title: "Class", key: ([label]) => ranks[place][label] ?? label, show: null },
      { title: "n", number: true, key: (row) => row[1], show: (row) => String(row[1]) },
      { title: "Clean\u00a0%", number: true, key: (row) => (row[2] === null ? null : row[2] / row[1]),
        show: (row) => share(row[2], row[1], row[3]) },
      ...(attacked ? [{ title: "Robust\u00a0%", number: true,
        key: (row) => (row[4] === null ? null : row[4] / row[1]),
        show: (row) => share(row[4], row[1], row[5]) }] : []),
      { title: "Most often taken for", key: (row) => (row[6] === null ? null : ranks[place][row[6]] ?? row[6]),
        show: (row) => (row[6] === null ? MISSING : `${className(run, row[6])} (${row[7]})`) },
    ];
    const sorted = [...rows].sort(byKey(all[classState.column]?.key ?? all[0].key, classState.order));
    const body = make("tbody", {}, ...sorted.map((row) => make("tr", {}, ...all.map((column) => {
      if (column.show) return make("td", { className: column.number ? "num" : "" }, column.show(row));
      const button = make("button", { type: "button", className: "link" },
        make("bdi", {}, className(run, row[0])));
      button.addEventListener("click", () => {
        form.elements.label.value = `${place}:${row[0]}`;
        update();
      });
      return make("th", { scope: "row" }, button);
    }))));
    classes.replaceChildren(make("caption", { className: "unseen" }, "Classes"),
      head(all, classState.column, classState.order, (i) => {
        classState.order = classState.column === i ? -classState.order : all[i].number ? -1 : 1;
        classState.column = i;
        drawClasses();
        refocus(classes, i);
      }), body);
  };

  const details = (item) => {
    const [run, row] = item;
    const facts = make("dl", { className: "grid" });
    const fact = (name, ...shownAs) => facts.append(make("dt", {}, name), make("dd", {}, ...shownAs));
    const anchor = `run-${run + 1}`;
    fact("Run", make("a", { href: `#${anchor}` }, runName(run)));
    fact("True class", className(run, labelOf(item)));
    const outcome = data.outcomes[value("outcome")(item)];
    fact("Outcome", data.meanings[outcome] ? `${outcome}: ${data.meanings[outcome]}` : outcome);
    if (value("target")(item) !== null) fact("Target", className(run, value("target")(item)));
    for (const column of columns) {
      if (!column.number || (column.has && !has(run, column.has))) continue;
      const found = column.show(item);
      if (found !== MISSING) fact(column.title, found);
      const p = column.title.includes("lean") || column.title.includes("ttacked")
        ? column.key(item) : null;
      if (p !== null) fact("\u2003p of the true class", p.toFixed(3));
    }
    const notes = (data.runs[run].notes[row] ?? []).map((text) => make("li", {}, text));
    const figure = [...document.querySelectorAll("figure[data-run]")].find(
      (one) => one.dataset.run === anchor && one.dataset.video === video(item));
    const links = make("p", { className: "links" });
    if (figure) links.append(make("a", { href: `#${figure.id}` }, "Play the clip"), " ");
    if (data.runs.length > 1) {
      const everywhere = make("button", { type: "button", className: "button" }, "This video in all runs");
      everywhere.addEventListener("click", () => {
        form.elements.run.value = "all";
        form.elements.text.value = video(item);
        fillChoices();
        form.elements.label.value = form.elements.outcome.value = "";
        drawClasses();
        update();
        dialog.close();
      });
      links.append(everywhere);
    }
    links.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
    facts.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
    dialog.querySelector("h3").replaceChildren(make("bdi", {}, video(item)));
    dialog.querySelector("div").replaceChildren(facts,
      ...(notes.length ? [make("ul", { className: "flags" }, ...notes)] : []), links);
    dialog.showModal();
  };
  dialog.querySelector("button").addEventListener("click", () => dialog.close());

  form.addEventListener("input", (event) => {
    if (event.target.name === "run") {
      fillChoices();
      drawClasses();
    }
    update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  pager.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    state.page += button === pager.querySelector("button") ? -1 : 1;
    draw();
    table.scrollIntoView({ block: "nearest" });
  });
  form.hidden = table.hidden = false;
  // Runs without an attack come first, and are not what readers come for.
  form.elements.run.value = Math.max(0, data.runs.findIndex((run) => run.is_attacked));
  fillChoices();
  drawClasses();
  update();
})();
