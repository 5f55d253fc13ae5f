// Light or dark: as the system says, until the button says otherwise.

const KEY = "pipeflow-theme";

/** Let `button` switch the theme; `changed` is called after every change. */
export function followTheme(button, changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const theme = chosen() ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to the ${theme === "dark" ? "light" : "dark"} theme`);
    changed();
  };
  button.addEventListener("click", () => {
    choose(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  show();
}

// What was chosen outlives the page only where the browser allows it.
let choice = null;

function chosen() {
  try {
    return choice ?? localStorage.getItem(KEY);
  } catch {
    return choice;
  }
}

function choose(theme) {
  choice = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Kept until the page is closed.
  }
}
