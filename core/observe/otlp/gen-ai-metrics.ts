import type { Attributes, Histogram, Meter } from "@opentelemetry/api";
import type { ModelAsked } from "./road-span.ts";

/** Powers of two of a hundredth of a second, and of four, as the conventions advise. */
const seconds = Array.from({ length: 14 }, (_, power) => 2 ** power / 100);
const tokens = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** All are from bounded sets: models are those that routes name. */
const labels = ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"] as const;

/** What the conventions for models want measured of their clients. */
export class GenAiMetrics {
  readonly #duration: Histogram;
  readonly #tokens: Histogram;

  constructor(meter: Meter) {
    this.#duration = meter.createHistogram("gen_ai.client.operation.duration", {
      description: "Time a model took to answer, a streamed answer with its last event",
      unit: "s",
      advice: { explicitBucketBoundaries: seconds },
    });
    this.#tokens = meter.createHistogram("gen_ai.client.token.usage", {
      description: "Tokens of one request to a model, as its provider counted them",
      unit: "{token}",
      advice: { explicitBucketBoundaries: tokens },
    });
  }

  record({ attributes, seconds: taken, usage }: ModelAsked): void {
    const told: Attributes = {};
    for (const label of labels) if (attributes[label] !== undefined) told[label] = attributes[label];
    this.#duration.record(taken, told);
    if (usage === undefined) return;
    this.#tokens.record(usage.inputTokens, { ...told, "gen_ai.token.type": "input" });
    this.#tokens.record(usage.outputTokens, { ...told, "gen_ai.token.type": "output" });
  }
}
