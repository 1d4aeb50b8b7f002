"use strict";
// What stands around the grid: figures, hint, labelled examples and notices.
window.Hilltop = window.Hilltop || {};

(() => {
  const { about, hoped, make, number, percent, plural, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const TOLD_MS = 5000;
  const NONE = {
    wrong: "This class has no labels.",
    planned: "The plan asks for no picture of this class.",
    disputed: "Nobody disagrees: there is nothing to decide.",
  };

  function figure(caption, value, detail) {
    const block = make("div");
    const told = make("dd", "", value);
    if (detail) told.append(make("small", "", ` ${detail}`));
    block.append(make("dt", "", caption), told);
    return block;
  }

  function share(present, total) {
    return total ? percent(present / total) : "–";
  }

  function showFigures(summary, view) {
    const shown = [];
    const { ranked, recent, sample } = summary;
    if (view === "wrong") {
      const { labels, expected, right, struck } = summary.wrong;
      shown.push(figure("Struck", number(struck), expected ? `of about ${about(expected)} wrong` : "no sign of wrong ones"));
      shown.push(figure("Right", number(right)));
      shown.push(figure("Labels", number(labels)));
    } else if (view === "random") {
      shown.push(figure("Sample answered", number(sample.answers)));
      shown.push(figure("Label missing", share(sample.present, sample.answers),
        sample.answers ? `${sample.present} of ${sample.answers}` : ""));
      shown.push(figure("Missing in all", sample.answers
        ? number((summary.candidates * sample.present) / sample.answers) : "–",
      sample.answers ? `90%: ${number(sample.low)} to ${number(sample.high)}` : ""));
      shown.push(figure("Unlabelled", number(summary.candidates)));
    } else {
      const decided = ranked.present + ranked.absent;
      shown.push(figure("Found", number(summary.present), hoped(summary)));
      shown.push(figure("Precision so far", share(ranked.present, decided),
        decided ? `${ranked.present} of ${decided}` : ""));
      shown.push(figure(`Last ${recent.answers || 20}`, share(recent.present, recent.answers)));
      shown.push(figure("Disagreements", number(summary.disputed)));
    }
    byId("figures").replaceChildren(...shown);
  }

  // Say when a class is no longer worth the time, and offer the next one.
  function showHint(summary, view, next) {
    const hint = byId("hint");
    hint.hidden = summary.worthwhile || view !== "ranked";
    if (hint.hidden) return;
    const { present, answers, low, high } = summary.recent;
    const between = high === undefined ? "" : ` With 90% confidence it is ${percent(low)} to ${percent(high)}.`;
    hint.querySelector("p").textContent = `${present || "None"} of the last ${answers} answers found a`
      + ` missing label (${percent(present / answers)}).${between} You may stop here: this class is`
      + " hardly worth more of your time.";
    const button = byId("next-class");
    button.hidden = !next;
    if (next) button.textContent = `Next: ${visible(next.name)}`;
  }

  // What is asked, before and behind the name of the class.
  function asked(view) {
    return view === "wrong" ? ["Is the label “", "” right?"] : ["Is “", "” in the picture?"];
  }

  // How large pictures are; the browser keeps it. Returns what makes them larger or smaller.
  function listenToSize(slider, grid) {
    const show = () => grid.style.setProperty("--tile", `${slider.value}rem`);
    slider.value = 11;
    try {
      const kept = localStorage.getItem("hilltop-size");
      if (kept) { slider.value = kept; show(); }
    } catch { /* the usual size then */ }
    const change = () => {
      show();
      try { localStorage.setItem("hilltop-size", slider.value); } catch { /* lost when closed */ }
    };
    slider.addEventListener("input", change);
    return (steps) => { slider.value = Number(slider.value) + 2 * steps; change(); };
  }

  // Labelled pictures of the class, to compare with.
  function showExamples({ class: summary, examples = [] }, picture) {
    const strip = byId("examples");
    strip.hidden = !examples.length;
    if (strip.hidden) return;
    strip.setAttribute("aria-label", `Labelled examples of ${visible(summary.name)}: show them larger or smaller`);
    strip.replaceChildren(make("span", "", "Labelled"), ...examples.map(({ row, image }) => {
      const shown = make("img");
      Object.assign(shown, { alt: "", title: visible(image), src: picture(row, "small") });
      return shown;
    }));
  }

  // Which parts of the page belong to a view: a grid of pictures, or one picture with its classes.
  function showViews(offered, view) {
    byId("views").querySelectorAll("button").forEach((button) => {
      button.hidden = !offered.includes(button.dataset.view);
      button.setAttribute("aria-pressed", String(button.dataset.view === view));
      if (button.dataset.view === view) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    byId("views").hidden = offered.length < 2;
    document.body.classList.toggle("by-image", view === "image");
    byId("whole").hidden = view !== "image";
    if (view === "image") ["pager", "empty", "hint", "examples"].forEach((id) => { byId(id).hidden = true; });
  }

  function showImageHead({ place, total, items }, nothing) {
    byId("question").replaceChildren("What else is in this picture?");
    byId("picked").textContent = "Classes";
    const open = items.filter((item) => !item.label && !item.answer);
    const lacking = nothing ? 0 : open.reduce((sum, item) => sum + (item.probability || 0), 0);
    byId("figures").replaceChildren(
      figure("Picture", number(place + 1), `of ${number(total)}, those that lack most first`),
      figure("Probably lacks", lacking < 0.05 ? "nothing" : lacking.toFixed(1),
        lacking < 0.05 ? "" : lacking.toFixed(1) === "1.0" ? "label" : "labels"),
    );
  }

  function showDisputedHead({ open, total, pairs, may_rule: mayRule, adjudicators }) {
    const named = adjudicators.length ? `${adjudicators.map(visible).join(" or ")} decides; here you change your own answer`
      : "";
    byId("hint").hidden = true;
    byId("figures").replaceChildren(
      figure("To decide", number(open), `of ${plural(total, "disagreement", "disagreements")}`),
      ...(pairs.length ? [figure("Your answer", mayRule ? "decides" : "is one of several", named && !mayRule ? named : "")] : []),
    );
  }

  function showPager({ start, total, pairs, view, end = start + pairs.length }, narrowed) {
    byId("pager").hidden = start === 0 && total <= end;
    byId("where").textContent = `${number(start + 1)} to ${number(end)} of ${number(total)}`;
    byId("previous").disabled = start === 0;
    byId("next").disabled = end >= total;
    const none = NONE[view] ?? "There are no candidates for this class.";
    showEmpty(pairs.length ? "" : narrowed ? "No picture of this class fits the search." : none);
  }

  function showEmpty(text) {
    byId("empty").hidden = !text;
    byId("empty").textContent = text;
  }

  // A word that stands over the pictures for a moment.
  let toldUntil = 0;
  function showTold(text) {
    const told = byId("told");
    told.textContent = text;
    told.hidden = false;
    clearTimeout(toldUntil);
    toldUntil = setTimeout(() => { told.hidden = true; }, TOLD_MS);
  }

  // Answers that wait or were refused are always in sight.
  function showQueue(queue, pageFault, { retry, forget }) {
    const notice = byId("notice");
    const parts = [];
    const waiting = plural(queue.waiting.length, "answer waits", "answers wait");
    if (queue.waiting.length && queue.away) {
      parts.push(`${queue.away} ${waiting} in this browser and will be sent as soon as it is back.`);
    } else if (pageFault) parts.push(pageFault);
    if (queue.refused.length) {
      const names = queue.refused.map(({ event }) => (event.undo ? "an undo"
        : `${visible(event.class)} in ${visible(event.image)}: ${window.Hilltop.WORDS[event.answer] ?? "a comment"}`));
      const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
      parts.push(`Not saved: ${names.slice(0, 3).join("; ")}${more}. ${queue.refused[0].reason}`);
    }
    const text = parts.join(" ");
    notice.hidden = !text;
    if (notice.dataset.text !== text) {
      notice.dataset.text = text;
      notice.replaceChildren(make("p", "", text));
      const button = make("button", "plain", queue.refused.length ? "Dismiss" : "Try now");
      button.type = "button";
      button.addEventListener("click", queue.refused.length ? forget : retry);
      if (text) notice.append(button);
    }
    const saved = byId("saved");
    const unsaved = Boolean(window.Hilltop.client.unsaved?.());
    saved.textContent = queue.waiting.length ? (queue.away ? `${number(queue.waiting.length)} unsent` : "Saving")
      : queue.refused.length ? "Not all saved"
        : unsaved ? "Not in a file yet" : "Saved";
    saved.dataset.state = queue.away || queue.refused.length || unsaved ? "away" : "";
  }

  Object.assign(window.Hilltop, {
    asked, listenToSize, showDisputedHead, showEmpty, showExamples, showFigures, showHint, showImageHead, showPager, showQueue,
    showTold, showViews,
  });
})();
