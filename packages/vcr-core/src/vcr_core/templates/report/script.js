"use strict";
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];

  const key = (row, column) => {
    // The first cell also holds footnote marks.
    if (column === 0) return row.dataset.model.toLowerCase();
    const cell = row.cells[column];
    const given = cell.dataset.sort;
    if (given !== undefined) return given === "" ? null : Number(given);
    const text = cell.textContent.trim();
    return heads[column].classList.contains("num") ? Number(text) : text.toLowerCase();
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const before = head.getAttribute("aria-sort");
      const order = before === null ? (numeric ? "descending" : "ascending")
        : before === "ascending" ? "descending" : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const keyed = [...body.rows].map((row) => [key(row, column), row]);
      // Missing numbers stay at the end in both orders.
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * compare(a, b);
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });

  const form = document.getElementById("filters");
  const shown = document.getElementById("shown");
  const filter = () => {
    const wanted = new FormData(form);
    const words = wanted.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) &&
        [...form.querySelectorAll("select")].every(
          (select) => select.value === "" || row.dataset[select.name] === select.value);
      row.hidden = !fits;
      count += fits;
    }
    shown.value = `${count} of ${body.rows.length} runs`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();

  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
