// The AI SDK's own MCP client with an `authProvider`: connected, sent to a browser, and connected again with what came back.
import { auth, createMCPClient } from "@ai-sdk/mcp";
import { answerLines } from "./line.mjs";

const url = `${process.env.GATEWAY_URL}/mcp`;
const redirectUrl = process.env.REDIRECT_URL;
const kept = {};
const authProvider = {
  redirectUrl,
  clientMetadata: {
    client_name: "a client that nobody registered before",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => {
    kept.client = client;
  },
  authorizationServerInformation: () => kept.server,
  saveAuthorizationServerInformation: (server) => {
    kept.server = server;
  },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    kept.tokens = tokens;
  },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => {
    kept.verifier = verifier;
  },
  redirectToAuthorization: ({ href }) => {
    kept.page = href;
  },
};
const connect = () => createMCPClient({ transport: { type: "http", url, authProvider } });

/** Without a callback: the error of connecting, and the page to open. With one: what the tool `echo` answers. */
await answerLines(async ({ callback, args }) => {
  if (callback === undefined) {
    const error = await connect().then(
      () => undefined,
      ({ name }) => name,
    );
    return { refusal: error, page: kept.page };
  }
  const query = new URLSearchParams(callback);
  await auth(authProvider, { serverUrl: url, authorizationCode: query.get("code"), callbackIssuer: query.get("iss") });
  const client = await connect();
  try {
    const { echo } = await client.tools();
    return await echo.execute(args, { toolCallId: "call_1", messages: [] });
  } finally {
    await client.close();
  }
});
