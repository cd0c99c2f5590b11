// What only the browser can do after a change of the URL or a click, and how ag-grid draws cells.

window.dash_clientside = Object.assign({}, window.dash_clientside, {
  switchpoint: {
    // The page's title, no alert of the page before, and which link is the current page.
    arrived: function (path, pages) {
      const title = new Map(pages).get(path) || "";
      document.title = title ? `${title} · Switchpoint` : "Switchpoint";
      return [title, null, ...pages.map((page) => page[0] === path)];
    },

    // The links to the pages keep the system.
    keepSystem: function (search, pages) {
      const system = new URLSearchParams(search || "").get("s");
      const query = system ? "?s=" + encodeURIComponent(system) : "";
      return pages.map(([path]) => (path === "/" ? path : path + query));
    },

    // A click on a point chooses its size.
    sizeOfPoint: function (click) {
      const size = click && click.points[0].customdata;
      return Number.isInteger(size) ? String(size) : window.dash_clientside.no_update;
    },
  },
});

window.dashAgGridComponentFunctions = Object.assign({}, window.dashAgGridComponentFunctions, {
  MethodName: function (props) {
    return React.createElement(
      "span",
      null,
      React.createElement("span", { style: { color: props.data.color }, "aria-hidden": true }, "■ "),
      props.value
    );
  },
  EvidenceLink: function (props) {
    return props.value ? React.createElement("a", { href: props.value }, "samples") : "";
  },
});
