// Questions to a model, asked by a library: see `Question` and `Answer` in ../library.ts.
import { answerLines, shown } from "./line.mjs";

/**
 * `ask` has the library ask the model, aborted by `signal`, and resolves with the text of the last answer. It tells `onText`
 * of each piece of a streamed text, and offers the model the tool `weather`, where there is one.
 */
export function answerQuestions(ask) {
  return answerLines(async ({ abortAfter, tools, ...question }) => {
    const [abort, pieces, calls] = [new AbortController(), [], []];
    const onText = (piece) => {
      if (piece !== "") pieces.push(piece);
      if (pieces.join("").length > abortAfter) abort.abort();
    };
    const weather = async ({ city }) => {
      calls.push({ city });
      return "sunny";
    };
    const asked = { ...question, onText, signal: abort.signal, weather: tools ? weather : undefined };
    const told = await ask(asked).then(
      (text) => ({ text }),
      (error) => ({ error: shown(error) }),
    );
    return { ...told, pieces, calls };
  });
}

export const weatherAbout = "The weather of a city.";
