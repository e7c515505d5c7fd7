import type { IncomingMessage } from "node:http";

/**
 * Whether every reader finds the end of this request's body in the same place. Node also takes a body for chunked
 * behind another coding, and in HTTP/1.0; others do not, and see a second request in what Node takes for the first.
 */
export function isPlainlyFramed(request: IncomingMessage): boolean {
  const coding = request.headers["transfer-encoding"];
  return coding === undefined || (coding.toLowerCase() === "chunked" && request.httpVersion === "1.1");
}
