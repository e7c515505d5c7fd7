import type { JsonObject } from "../../kernel/json.ts";
import type { Principal } from "../../kernel/principal.ts";
import type { TokenUsage } from "../../kernel/token-usage.ts";
import type { Candidate } from "../../provider/outgoing.ts";
import type { Reservation, UsageMeter } from "../../usage/meter.ts";
import { contentOf, estimateTokens, type RequestContent } from "../../usage/request-content.ts";
import type { Tokenizer } from "../../usage/tokenizer.ts";

export interface BillParts {
  readonly meter: UsageMeter;
  readonly tokenizer: () => Promise<Tokenizer>;
}

/** What one model request takes of its principal's limits and budgets: reserved before it is judged, put right after. */
export class Bill {
  readonly #parts: BillParts;
  readonly #content: RequestContent;
  readonly #reservation: Reservation;

  /** Throws RATE_LIMITED or BUDGET_EXHAUSTED; then nothing was taken. */
  constructor(parts: BillParts, principal: Principal, body: JsonObject) {
    this.#parts = parts;
    this.#content = contentOf(body);
    this.#reservation = parts.meter.admit(principal, estimateTokens(this.#content));
  }

  /** Counts what was served: as the provider counted it, else as we count the request and what is there of its answer. */
  async settle({ provider, model }: Candidate, counted: TokenUsage | undefined, answer: JsonObject): Promise<void> {
    const usage = counted ?? (await this.#count(answer));
    this.#parts.meter.settle(this.#reservation, { provider, model, usage });
  }

  /** Gives back what was reserved, unless it was settled. */
  release(): void {
    this.#parts.meter.release(this.#reservation);
  }

  async #count(answer: JsonObject): Promise<TokenUsage> {
    const tokenizer = await this.#parts.tokenizer();
    const said = answer.choices ?? answer.content ?? [];
    const { texts } = contentOf({ messages: Array.isArray(said) ? said : [] });
    return { inputTokens: tokenizer.countRequest(this.#content), outputTokens: tokenizer.countText(texts.join("\n")) };
  }
}
