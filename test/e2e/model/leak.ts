import { buildAssembly } from "../../support/assembly.ts";
import { canaryOf } from "../../support/canary.ts";
import type { PackFolders } from "../../support/policy-pack.ts";
import { folderWith } from "../../support/wasm-plugin.ts";

/** What must not leave. */
export const secret: string = canaryOf("model-answer");

/** Writes the folder of the plugin that puts `[mark]` where a canary stands in an answer. */
export async function writeMarker(folders: PackFolders): Promise<string> {
  return folders.write(folderWith("canary-mark", await buildAssembly("test/fixture/canary-mark")));
}

/** Every way to cut a text into two. */
export function halvesOf(text: string): readonly (readonly string[])[] {
  return Array.from({ length: text.length - 1 }, (_, at) => [text.slice(0, at + 1), text.slice(at + 1)]);
}

/** Every way to cut a text into three. */
export function thirdsOf(text: string): readonly (readonly string[])[] {
  return halvesOf(text).flatMap(([first = "", rest = ""]) => halvesOf(rest).map((halves) => [first, ...halves]));
}

/** As many ways to cut a text into ten as it has letters, each by steps of other lengths. */
export function tenthsOf(text: string): readonly (readonly string[])[] {
  return Array.from(text, (_, turn) => {
    const lengths = Array.from({ length: 9 }, (_, index) => 1 + ((turn + index * (1 + (turn % 3))) % 3));
    let at = 0;
    const parts = lengths.map((length) => {
      at += length;
      return text.slice(at - length, at);
    });
    return [...parts, text.slice(at)];
  });
}
