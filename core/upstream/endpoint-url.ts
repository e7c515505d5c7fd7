import { GatewayError } from "../kernel/error.ts";
import { type HttpConfig, isReservedHeader } from "../kernel/upstream-config.ts";

/** The address of an HTTP upstream. Throws CONFIG_INVALID for another scheme, for credentials in it and for reserved headers. */
export function endpointUrl(config: HttpConfig): URL {
  const url = URL.canParse(config.url) ? new URL(config.url) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("CONFIG_INVALID", `upstream \`${config.name}\`: expected an http or https url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new GatewayError(
      "CONFIG_INVALID",
      `upstream \`${config.name}\`: expected credentials in a header, not in the url`,
    );
  }
  for (const name of Object.keys(config.headers)) {
    if (isReservedHeader(name)) {
      throw new GatewayError(
        "CONFIG_INVALID",
        `upstream \`${config.name}\`: header \`${name}\` belongs to the protocol`,
      );
    }
  }
  return url;
}
