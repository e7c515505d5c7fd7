/** A place outside the data folder that is told where each chain stands. */
export type WitnessConfig = WitnessPlace & {
  readonly name: string;
  /** Time from one note to the next. */
  readonly intervalMs: number;
};

export type WitnessPlace =
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "git"; readonly repository: string }
  | {
      readonly type: "http";
      readonly url: string;
      /** Sent with every request; secrets are already resolved. */
      readonly headers: Readonly<Record<string, string>>;
    };
