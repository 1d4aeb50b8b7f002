"use strict";
// What a key does. Letters work where the pictures are, so that they never get in the way of typing.
window.Hilltop = window.Hilltop || {};

(() => {
  const ANSWERS = { y: "present", n: "absent", u: "unsure" };
  const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
  const byId = (id) => document.getElementById(id);

  // `can` holds what the page can do: answer, undo, move, turn, step, zoom, close, find, help, invert,
  // split, examples, resize, comment, like, search, people.
  // `whole` has the keys while one picture is shown with all its classes.
  function listenToKeys(grid, zoom, whole, can) {
    function pressed(event) {
      const typing = event.target.closest("input, textarea, select");
      if (typing || event.altKey || document.querySelector("dialog[open]:not(#zoom)")) return;
      const control = event.ctrlKey || event.metaKey;
      const atPictures = zoom.isOpen || event.target === document.body
        || byId("grid").contains(event.target);
      const handled = control ? withControl(event)
        : whole.isOpen ? inWhole(event) || anywhere(event)
          : (atPictures && inPictures(event)) || anywhere(event);
      if (handled) event.preventDefault();
    }

    function withControl(event) {
      const key = event.key.toLowerCase();
      if (key === "z" && !event.shiftKey) can.undo();
      else if (key === "a" && byId("grid").contains(event.target)) grid.selectAll();
      else return false;
      return true;
    }

    function inPictures(event) {
      const { key } = event;
      const letter = key.toLowerCase();
      if (letter in ANSWERS) {
        // A key that is held down would answer a whole page.
        if (!event.repeat) can.answer(ANSWERS[letter]);
      } else if (ARROWS.includes(key)) can.move(key, event.shiftKey && !zoom.isOpen);
      else if ((key === " " || key === "Enter") && !event.target.closest("button")) can.zoom();
      else if (letter === "i" && !zoom.isOpen) can.invert();
      else if (letter === "d") can.split();
      else if (letter === "c") can.comment();
      else if (letter === "l") can.like();
      else if (letter === "e" && !zoom.isOpen) can.examples();
      else if (zoom.isOpen && (key === "+" || key === "-")) zoom.closer(key === "+" ? 1.5 : 1 / 1.5);
      else if (key === "+" || key === "-") can.resize(key === "+" ? 1 : -1);
      else return false;
      return true;
    }

    function inWhole(event) {
      const { key } = event;
      const letter = key.toLowerCase();
      if (event.target.closest("button, nav")) return false;
      if (letter in ANSWERS) {
        if (!event.repeat) whole.answer(ANSWERS[letter]);
      } else if (ARROWS.includes(key)) whole.move(key);
      else if (key === "Enter") { if (!event.repeat) whole.rest(); }
      else if (letter === "a") byId("add-class").focus();
      else if (letter === "c") can.comment();
      else if (key === "PageDown" || key === "PageUp") whole.turn(key === "PageDown" ? 1 : -1);
      else return false;
      return true;
    }

    function anywhere(event) {
      const { key } = event;
      if (key.toLowerCase() === "z") can.undo();
      else if (key === "?") can.help();
      else if (key.toLowerCase() === "f" && !zoom.isOpen) can.search();
      else if (key.toLowerCase() === "t" && !zoom.isOpen) can.people();
      else if (key === "PageDown") can.turn(1);
      else if (key === "PageUp") can.turn(-1);
      else if (key === "]") can.step(1);
      else if (key === "[") can.step(-1);
      else if (key === "/" && !zoom.isOpen) can.find();
      else if (key === "Escape" && !zoom.isOpen) can.close();
      else return false;
      return true;
    }

    document.addEventListener("keydown", pressed);
  }

  window.Hilltop.listenToKeys = listenToKeys;
})();
