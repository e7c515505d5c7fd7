import { Refusal } from "./api.js";
import { button, field, make, statusLine } from "./element.js";
import { visible } from "./text.js";

/** A change that takes a reason, which goes on record: a text, and a button that says what it does. */
export function reasonForm(action, label, apply, className = "") {
  const reason = make("textarea", "");
  Object.assign(reason, { rows: 2, maxLength: 1_024, required: true });
  const result = statusLine();
  const send = async () => {
    const text = reason.value.trim();
    if (text === "") {
      result.textContent = "Say why: the reason goes on record.";
      return reason.focus();
    }
    // A button that is disabled loses the focus to nothing.
    result.focus();
    confirm.disabled = true;
    result.textContent = "Recording…";
    try {
      await apply(text);
      result.textContent = "Done, and on record.";
      reason.value = "";
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      result.textContent = `Not done: ${visible(error.message)}`;
    } finally {
      confirm.disabled = false;
    }
  };
  const confirm = button(action, send, className);
  return make("div", "reason-form", field(label, reason), make("div", "buttons", confirm), result);
}
