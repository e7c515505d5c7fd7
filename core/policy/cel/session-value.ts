import type { CelValue } from "@bufbuild/cel";
import type { ActionEnvelope } from "../../kernel/envelope.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { SessionState } from "../../kernel/session-state.ts";
import { recordShape, type Shape, shapeOf } from "./shape.ts";
import { toCelValue } from "./value.ts";

const listOf = (element: Shape): Shape => ({ kind: "list", element });
const texts = listOf(shapeOf.string);

/** What rules may read of where an action reaches to, and of what its session did and met before it. Ages are seconds. */
export const sessionShapes: Readonly<Record<"facts" | "session_state" | "history", Shape>> = {
  facts: recordShape({ hosts: texts, paths: texts, more: shapeOf.bool }),
  session_state: recordShape({
    risk: shapeOf.double,
    actions: shapeOf.double,
    reviews: shapeOf.double,
    tools: shapeOf.double,
    new_tool: shapeOf.bool,
    taints: listOf(
      recordShape({
        name: shapeOf.string,
        target: shapeOf.string,
        tool: shapeOf.string,
        action: shapeOf.string,
        age: shapeOf.double,
      }),
    ),
  }),
  history: listOf(
    recordShape({
      age: shapeOf.double,
      protocol: shapeOf.string,
      tool: shapeOf.string,
      target: shapeOf.string,
      capability: shapeOf.string,
      decision: shapeOf.string,
      dispatched: shapeOf.bool,
      hosts: texts,
      paths: texts,
    }),
  ),
};

/** Of an action that nobody watches: a session that begins. */
const beginning: SessionState = { risk: 0, actions: 0, reviews: 0, tools: 0, new_tool: true, taints: [] };

export function factsValue({ facts }: ActionEnvelope): CelValue {
  return toCelValue((facts ?? { hosts: [], paths: [], more: false }) as unknown as JsonObject);
}

export function sessionStateValue(action: ActionEnvelope): CelValue {
  const state = action.session_state ?? beginning;
  const taints = withAges(state.taints, action);
  return toCelValue({ ...state, taints } as unknown as JsonObject);
}

/** The latest first. */
export function historyValue(action: ActionEnvelope): CelValue {
  return toCelValue(withAges(action.history ?? [], action));
}

/** The same envelope always gives the same ages: they are told from its own time. */
function withAges(items: readonly { readonly at: number }[], { time }: ActionEnvelope): readonly JsonObject[] {
  const now = Date.parse(time);
  return items.map(({ at, ...item }) => ({ ...item, age: Math.max(0, now - at) / 1_000 }));
}
