"use strict";
// Words and numbers as the page writes them, and small elements that hold them.
window.Hilltop = window.Hilltop || {};

(() => {
  const WORDS = { present: "yes", absent: "no", unsure: "unsure" };

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    // Text only, never markup: names come from a label file.
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function percent(share) {
    if (share > 0.995 && share < 1) return ">99%";
    if (share > 0 && share < 0.005) return "<1%";
    return `${Math.round(100 * share)}%`;
  }

  function visible(name) {
    return name.replace(/[\u0000-\u001f\u007f]/g, "␣");
  }

  // The end of a file name tells most: where there is no room, its beginning is cut.
  function fileName(text) {
    const name = make("span", "name");
    name.append(make("bdi", "", text));
    name.title = text;
    return name;
  }

  function chips(labels) {
    return labels.length ? labels.map((label) => make("span", "chip", visible(label)))
      : [make("span", "chip none", "no known labels")];
  }

  // Offer what was made as a file.
  function saveAs(blob, name) {
    const link = make("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // What people wrote about a pair, each with a name.
  function comments(written = []) {
    return written.map(({ reviewer, text }) => {
      const one = make("span", "comment");
      one.append(make("b", "", `${visible(reviewer)}: `), visible(text));
      return one;
    });
  }

  const number = (value) => Math.round(value).toLocaleString("en-GB");
  const about = (value) => (value < 1 ? "under 1" : number(value));
  // What may be found of a class: nothing, where the labels show no sign that any is missing.
  const hoped = ({ expected, most }) => (most === null || most === undefined ? `of about ${about(expected)}`
    : `none expected, ${most < 1 ? "hardly one" : `at most ${number(most)}`}`);
  const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

  Object.assign(window.Hilltop, {
    WORDS, about, chips, comments, fileName, hoped, make, number, percent, plural, saveAs, visible,
  });
})();
