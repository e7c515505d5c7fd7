/** Milliseconds since the epoch. Tests bring their own. */
export type Clock = () => number;

/** `count` unpredictable bytes. */
export type Random = (count: number) => Uint8Array;
