import { make } from "./element.js";
import { count, jsonLines } from "./text.js";

/** Characters that are put into the page at once. */
const perFrame = 131_072;

/**
 * Shows a value whole as escaped JSON, however long it is, a piece each frame. Resolves once its end is in the page; rejects
 * where `signal` aborts before.
 */
export async function renderJson(place, value, signal) {
  const block = make("pre", "json");
  place.append(block);
  let text = "";
  let shown = 0;
  const flush = async () => {
    block.append(text);
    shown += text.length;
    text = "";
    await nextFrame();
    signal.throwIfAborted();
  };
  for (const line of jsonLines(value)) {
    text += shown + text.length === 0 ? line : `\n${line}`;
    if (text.length >= perFrame) await flush();
  }
  await flush();
  place.append(make("p", "faint end-of-json", `End of the arguments: ${count(shown)} characters, none left out.`));
}

/** A value that is short, in one piece. */
export function jsonBlock(value, className = "") {
  return make("pre", `json ${className}`, [...jsonLines(value)].join("\n"));
}

/** The next frame; in a tab that is not in sight, where there is none, a turn of the event loop. */
function nextFrame() {
  return new Promise((resolve) => {
    if (document.hidden) setTimeout(resolve, 0);
    else requestAnimationFrame(() => resolve());
  });
}
