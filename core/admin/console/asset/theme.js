import { redrawCharts } from "./chart.js";

const names = ["auto", "light", "dark"];

/** The only thing that this page keeps in the browser: whether it is light or dark. */
const kept = "theme";

function apply(button, name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  button.textContent = `Theme: ${name}`;
  redrawCharts();
}

/** Lets a button go through the themes, beginning with the one that was chosen last. */
export function openTheme(button) {
  const stored = localStorage.getItem(kept);
  let name = names.includes(stored) ? stored : "auto";
  apply(button, name);
  button.addEventListener("click", () => {
    name = names[(names.indexOf(name) + 1) % names.length];
    if (name === "auto") localStorage.removeItem(kept);
    else localStorage.setItem(kept, name);
    apply(button, name);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
}
