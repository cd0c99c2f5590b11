// Light or dark as the system says; Bootstrap reads this attribute.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    const theme = dark.matches ? "dark" : "light";
    document.documentElement.setAttribute("data-bs-theme", theme);
  }
  dark.addEventListener("change", apply);
  apply();
})();
