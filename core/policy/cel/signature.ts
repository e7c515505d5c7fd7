/**
 * The functions a pack may call, with how many arguments each takes (a method's receiver not counted).
 * Everything else is refused at load: what is not here is not metered.
 */
export const functionArity: Readonly<Record<string, readonly number[]>> = {
  size: [1],
  int: [1],
  double: [1],
  string: [1],
  timestamp: [1],
  duration: [1],
  leaves: [1, 2],
};

export const methodArity: Readonly<Record<string, readonly number[]>> = {
  size: [0],
  contains: [1],
  startsWith: [1],
  endsWith: [1],
  matches: [1],
  glob: [1],
  lowerAscii: [0],
  upperAscii: [0],
  trim: [0],
  unescaped: [0],
  replace: [2],
  split: [1],
  join: [0, 1],
  distinct: [0],
  flatten: [0],
  substring: [1, 2],
  indexOf: [1],
  lastIndexOf: [1],
  charAt: [1],
  getFullYear: [0, 1],
  getMonth: [0, 1],
  getDate: [0, 1],
  getDayOfMonth: [0, 1],
  getDayOfWeek: [0, 1],
  getDayOfYear: [0, 1],
  getHours: [0, 1],
  getMinutes: [0, 1],
  getSeconds: [0, 1],
  getMilliseconds: [0, 1],
};

/** Macros the parser expands; named for "did you mean". */
export const macros = ["all", "exists", "exists_one", "filter", "map"] as const;

/** Operators whose calls need no look-up. */
export const operators: ReadonlySet<string> = new Set([
  "!_",
  "-_",
  "_==_",
  "_!=_",
  "_<_",
  "_<=_",
  "_>_",
  "_>=_",
  "_+_",
  "_-_",
  "_*_",
  "_/_",
  "_%_",
  "_&&_",
  "_||_",
  "_?_:_",
  "_[_]",
  "@in",
  "@not_strictly_false",
]);
