"use strict";
(() => {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b) => (typeof a === "number" ? a - b : collator.compare(a, b));

  // Tables of class "sortable": the last row of the head gets buttons. Cells may carry data-sort.
  const makeSortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const key = (row, column) => {
      const cell = row.cells[column];
      const text = (cell.dataset.sort ?? cell.textContent).trim();
      if (!heads[column].classList.contains("num")) return text;
      return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const first = head.classList.contains("num") ? "descending" : "ascending";
        const order = before === null ? first
          : before === "ascending" ? "descending" : "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const keyed = [...body.rows].map((row) => [key(row, column), row]);
        // Missing numbers stay at the end in both orders.
        keyed.sort(([a], [b]) => (a === null || b === null
          ? (a === null) - (b === null) : sign * compare(a, b)));
        const sorted = document.createDocumentFragment();
        keyed.forEach(([, row]) => sorted.append(row));
        body.append(sorted);
      });
    });
  };
  document.querySelectorAll("table.sortable").forEach(makeSortable);

  // A form with data-for="ID of a table" shows the rows whose data-NAME equals the select NAME
  // and whose text has all words of the field "text".
  const makeFilter = (form) => {
    const body = document.getElementById(form.dataset.for).tBodies[0];
    const shown = form.querySelector("output");
    const filter = () => {
      const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const selects = [...form.querySelectorAll("select")].filter((select) => select.value !== "");
      let count = 0;
      for (const row of body.rows) {
        const text = words.length ? row.textContent.toLowerCase() : "";
        const fits = words.every((word) => text.includes(word)) &&
          selects.every((select) => row.dataset[select.name] === select.value);
        row.hidden = !fits;
        count += fits;
      }
      shown.value = `${count} of ${body.rows.length} ${form.dataset.noun ?? "rows"}`;
    };
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  };
  document.querySelectorAll("form.tools[data-for]").forEach(makeFilter);

  const theme = document.getElementById("theme");
  if (theme) {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
    theme.hidden = false;
    theme.addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      name();
    });
    system.addEventListener("change", name);
    name();
  }

  const open = () => {
    let target = location.hash && document.getElementById(location.hash.slice(1));
    for (; target; target = target.parentElement) {
      if (target.tagName === "DETAILS") target.open = true;
    }
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
