"use strict";
(() => {
  const SVG = "http:" + "//www.w3.org/2000/svg";
  for (const chart of document.querySelectorAll(".chart")) {
    legend(chart);
    cursor(chart);
  }
  // Entries of a legend become buttons that hide and show their line.
  function legend(chart) {
    for (const entry of chart.querySelectorAll(".legend li")) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...entry.childNodes);
      entry.append(button);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        for (const line of chart.querySelectorAll(".l" + entry.dataset.line)) line.classList.toggle("hidden", !shown);
      });
    }
  }
  // A line follows the pointer or the arrow keys; the figures of the nearest row of the table are shown above it.
  function cursor(chart) {
    const heads = [...chart.querySelectorAll("thead th")].map((cell) => cell.textContent);
    const rows = [...chart.querySelectorAll("tbody tr[data-at]")].map((row) => ({
      at: Number(row.dataset.at),
      text: [...row.cells].map((cell, index) => (index ? heads[index] + " " : "") + cell.textContent).join(" · "),
    }));
    if (!rows.length) return;
    const first = chart.querySelector(".picture");
    const readout = document.createElement("p");
    readout.className = "readout";
    readout.setAttribute("role", "status");
    first.before(readout);
    for (const picture of chart.querySelectorAll(".picture")) {
      const svg = picture.querySelector("svg");
      const [left, right] = picture.dataset.area.split(" ").map(Number);
      const box = svg.viewBox.baseVal;
      const line = document.createElementNS(SVG, "line");
      line.setAttribute("class", "cursor hidden");
      line.setAttribute("y1", 12);
      line.setAttribute("y2", box.height - 40);
      svg.append(line);
      let index = -1;
      const show = (next) => {
        index = Math.max(0, Math.min(rows.length - 1, next));
        const x = box.width * (left + (right - left) * rows[index].at);
        line.setAttribute("x1", x);
        line.setAttribute("x2", x);
        line.classList.remove("hidden");
        readout.textContent = rows[index].text;
      };
      const hide = () => {
        line.classList.add("hidden");
        readout.textContent = "";
      };
      picture.tabIndex = 0;
      picture.setAttribute("role", "group");
      picture.setAttribute("aria-label", "Chart; the arrow keys read its figures");
      picture.addEventListener("pointermove", (event) => {
        // The picture keeps its proportions, so that it may be narrower than its box.
        const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        const at = (point.x / box.width - left) / (right - left);
        let nearest = 0;
        rows.forEach((row, number) => {
          if (Math.abs(row.at - at) < Math.abs(rows[nearest].at - at)) nearest = number;
        });
        show(nearest);
      });
      picture.addEventListener("pointerleave", hide);
      picture.addEventListener("blur", hide);
      picture.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
        if (step) show(index + step);
        else if (event.key === "Home") show(0);
        else if (event.key === "End") show(rows.length - 1);
        else if (event.key === "Escape") hide();
        else return;
        event.preventDefault();
      });
    }
  }
})();
