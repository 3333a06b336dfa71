"use strict";
(() => {
  const table = document.getElementById("board");
  if (!table) return;
  const bodies = [...table.tBodies];
  const rows = bodies.map((body) => [...body.rows].slice(1));
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(undefined, { numeric: true });

  // Rows are sorted within their ranking only: numbers of two rankings do not compare.
  const key = (row, column) => {
    const text = (row.cells[column].dataset.sort ?? row.cells[column].textContent).trim();
    if (!heads[column].classList.contains("num")) return text;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const numeric = head.classList.contains("num");
    const first = head.dataset.first ?? (numeric ? "descending" : "ascending");
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const order = before === null ? first : before === "ascending" ? "descending" : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const compare = numeric ? (a, b) => a - b : collator.compare;
      bodies.forEach((body, index) => {
        const keyed = rows[index].map((row) => [key(row, column), row]);
        // Missing numbers stay at the end in both orders.
        keyed.sort(([a], [b]) => (a === null || b === null
          ? (a === null) - (b === null) : sign * compare(a, b)));
        const sorted = keyed.map(([, row]) => row);
        const moved = sorted.some((row, place) => row !== body.rows[place + 1]);
        if (moved) body.append(...sorted);
      });
    });
  });

  const form = document.getElementById("filters");
  const shown = document.getElementById("shown");
  const selects = [...form.querySelectorAll("select")];
  const total = rows.flat().length;
  const filter = () => {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = selects.filter((select) => select.value !== "");
    let count = 0;
    let groups = 0;
    bodies.forEach((body, index) => {
      const title = words.length ? body.rows[0].textContent.toLowerCase() : "";
      let inside = 0;
      for (const row of rows[index]) {
        const text = words.length ? title + row.textContent.toLowerCase() : "";
        const fits = words.every((word) => text.includes(word)) &&
          chosen.every((select) => row.dataset[select.name] === select.value);
        row.hidden = !fits;
        inside += fits;
      }
      body.hidden = inside === 0;
      count += inside;
      groups += inside > 0;
    });
    shown.value = `${count} of ${total} runs in ${groups} ranking${groups === 1 ? "" : "s"}`;
  };

  // The address carries the filters, so that a view can be shared: index.html?attack=pgd.
  const fields = [form.elements.text, ...selects];
  const asked = new URLSearchParams(location.search);
  fields.forEach((field) => { if (asked.has(field.name)) field.value = asked.get(field.name); });
  selects.forEach((select) => { if (select.selectedIndex < 0) select.selectedIndex = 0; });
  const remember = () => {
    const wanted = new URLSearchParams();
    fields.forEach((field) => { if (field.value) wanted.set(field.name, field.value); });
    const query = wanted.toString();
    // Chromium refuses to rewrite the address of a page that was opened from a file.
    if (location.protocol !== "file:") {
      history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
    }
  };
  form.hidden = false;
  form.addEventListener("input", () => { filter(); remember(); });
  form.addEventListener("reset", () => setTimeout(() => { filter(); remember(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
})();
