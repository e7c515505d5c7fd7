import type { PinHead, ReviewHead, ToolPlace } from "./entry.ts";
import { nameSkeleton } from "./look-alike.ts";

/** The pins and reviews of one tenant, without the definitions themselves. */
export class TenantDefinitions {
  readonly #pins = new Map<string, PinHead>();
  readonly #reviews = new Map<string, ReviewHead>();
  readonly #byName = new Map<string, Set<PinHead>>();
  readonly #bySkeleton = new Map<string, Set<PinHead>>();
  readonly #usage = new Map<string, { pins: number; characters: number; reviews: number }>();

  get reviews(): Iterable<ReviewHead> {
    return this.#reviews.values();
  }

  get pins(): Iterable<PinHead> {
    return this.#pins.values();
  }

  pin(place: ToolPlace): PinHead | undefined {
    return this.#pins.get(placeKey(place));
  }

  review(place: ToolPlace): ReviewHead | undefined {
    return this.#reviews.get(placeKey(place));
  }

  /** The pins that clients call by this name: at most one, unless a prefix was configured anew. */
  named(exposedName: string): Iterable<PinHead> {
    return this.#byName.get(exposedName) ?? [];
  }

  /** The pins whose names are easily taken for this one, itself included. */
  resembling(exposedName: string): Iterable<PinHead> {
    return this.#bySkeleton.get(nameSkeleton(exposedName)) ?? [];
  }

  /** The entries of one upstream. */
  usage(upstream: string): { readonly pins: number; readonly characters: number; readonly reviews: number } {
    return this.#usage.get(upstream) ?? { pins: 0, characters: 0, reviews: 0 };
  }

  putPin(pin: PinHead): void {
    this.removePin(pin);
    this.#pins.set(placeKey(pin), pin);
    add(this.#byName, pin.exposed_name, pin);
    add(this.#bySkeleton, nameSkeleton(pin.exposed_name), pin);
    this.#count(pin.upstream, { pins: 1, characters: pin.characters });
  }

  removePin(place: ToolPlace): void {
    const pin = this.pin(place);
    if (pin === undefined) return;
    this.#pins.delete(placeKey(place));
    remove(this.#byName, pin.exposed_name, pin);
    remove(this.#bySkeleton, nameSkeleton(pin.exposed_name), pin);
    this.#count(pin.upstream, { pins: -1, characters: -pin.characters });
  }

  putReview(review: ReviewHead): void {
    this.removeReview(review);
    this.#reviews.set(placeKey(review), review);
    this.#count(review.upstream, { reviews: 1 });
  }

  removeReview(place: ToolPlace): void {
    if (this.#reviews.delete(placeKey(place))) this.#count(place.upstream, { reviews: -1 });
  }

  #count(upstream: string, { pins = 0, characters = 0, reviews = 0 }): void {
    const before = this.usage(upstream);
    this.#usage.set(upstream, {
      pins: before.pins + pins,
      characters: before.characters + characters,
      reviews: before.reviews + reviews,
    });
  }
}

function placeKey({ upstream, tool }: ToolPlace): string {
  return JSON.stringify([upstream, tool]);
}

function add(index: Map<string, Set<PinHead>>, key: string, pin: PinHead): void {
  const known = index.get(key) ?? new Set();
  index.set(key, known.add(pin));
}

function remove(index: Map<string, Set<PinHead>>, key: string, pin: PinHead): void {
  const known = index.get(key);
  if (known?.delete(pin) && known.size === 0) index.delete(key);
}
