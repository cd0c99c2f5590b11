// Follows the light or dark theme of the system, light on paper; Bootstrap reads the attribute.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function set(theme) {
    document.documentElement.setAttribute("data-bs-theme", theme);
  }
  function apply() {
    set(dark.matches ? "dark" : "light");
  }
  dark.addEventListener("change", apply);
  window.addEventListener("beforeprint", () => set("light"));
  window.addEventListener("afterprint", apply);
  apply();
})();
