const capacity: i32 = 128;
/** More than there are: the table adds its kinds after this. */
const maxKinds: i32 = 256;

/** Credentials in one text: of what kind, and from where to where. Beyond so many the last grows to hold the rest. */
export class FoundList {
  count: i32 = 0;
  private kinds: StaticArray<i32> = new StaticArray<i32>(capacity);
  private starts: StaticArray<i32> = new StaticArray<i32>(capacity);
  private ends: StaticArray<i32> = new StaticArray<i32>(capacity);

  clear(): void {
    this.count = 0;
  }

  add(kind: i32, start: i32, end: i32): void {
    if (this.count === capacity) {
      this.starts[capacity - 1] = min(this.starts[capacity - 1], start);
      this.ends[capacity - 1] = max(this.ends[capacity - 1], end);
      return;
    }
    this.set(this.count++, kind, start, end);
  }

  kind(index: i32): i32 {
    return this.kinds[index];
  }

  start(index: i32): i32 {
    return this.starts[index];
  }

  end(index: i32): i32 {
    return this.ends[index];
  }

  /** Puts them in the order of the text, and makes one of those that overlap: of the kind that begins first. */
  merge(): void {
    for (let index = 1; index < this.count; index++) this.sink(index);
    let last = 0;
    for (let index = 1; index < this.count; index++) {
      if (this.starts[index] < this.ends[last]) this.ends[last] = max(this.ends[last], this.ends[index]);
      else this.set(++last, this.kinds[index], this.starts[index], this.ends[index]);
    }
    this.count = min(this.count, last + 1);
  }

  private sink(from: i32): void {
    const kind = this.kinds[from];
    const start = this.starts[from];
    const end = this.ends[from];
    let to = from;
    for (; to > 0 && this.starts[to - 1] > start; to--) {
      this.set(to, this.kinds[to - 1], this.starts[to - 1], this.ends[to - 1]);
    }
    this.set(to, kind, start, end);
  }

  private set(index: i32, kind: i32, start: i32, end: i32): void {
    this.kinds[index] = kind;
    this.starts[index] = start;
    this.ends[index] = end;
  }
}

const wanted = new StaticArray<bool>(maxKinds).fill(true);
const noted = new StaticArray<bool>(maxKinds);
let isAnyNoted: bool = false;

export function isWanted(kind: i32): bool {
  return wanted[kind];
}

/** Leaves a kind out from now on. */
export function ignore(kind: i32): void {
  wanted[kind] = false;
}

/** Records that the text holds a credential of this kind, with or without a place. */
export function note(kind: i32): void {
  noted[kind] = true;
  isAnyNoted = true;
}

export function isNoted(kind: i32): bool {
  return noted[kind];
}

/** True where any kind was noted since `forget`. */
export function hasNoted(): bool {
  return isAnyNoted;
}

export function forget(): void {
  if (isAnyNoted) noted.fill(false);
  isAnyNoted = false;
}
