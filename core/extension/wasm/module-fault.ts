/** What is wrong with a module, in words for its author. Nothing of such a module is used. */
export class ModuleFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ModuleFault";
  }
}

/** Throws the fault unless a number read from a module is within its bound. */
export function checkBound(what: string, value: number, most: number): number {
  if (value > most) throw new ModuleFault(`expected at most ${most} ${what}, got ${value}`);
  return value;
}
