/** Adds to the part of the engine's interface that the sandbox declares. */
declare namespace WebAssembly {
  function compile(bytes: Uint8Array): Promise<Module>;
}
