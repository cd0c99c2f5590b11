// Light or dark as the system says; Bootstrap and ag-grid read these attributes.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    const theme = dark.matches ? "dark" : "light";
    document.documentElement.setAttribute("data-bs-theme", theme);
    document.documentElement.setAttribute("data-ag-theme-mode", theme);
  }
  dark.addEventListener("change", apply);
  apply();
})();
