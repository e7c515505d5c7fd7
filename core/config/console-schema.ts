import { roles } from "../action/role.ts";
import { enumeration, integer, list, map, object, optional, string } from "./schema.ts";

const oidcSchema = object(
  "OpenID Connect: people sign in to the console at one provider, by an authorization code with PKCE. Off until `issuer` is given. Register `<public_url>/console/callback` as the redirect URI.",
  {
    issuer: optional(
      string("Issuer, exactly as the claim `iss` of its ID tokens has it. Its metadata names all addresses.", {
        format: "oauth_url",
      }),
    ),
    client_id: optional(string("Id of this client. Required with `issuer`.", { format: "claim" })),
    client_secret_env: optional(
      string(
        "Environment variable that holds the client's secret. Left out: a public client, which PKCE alone binds.",
        {
          format: "variable",
        },
      ),
    ),
    scopes: list("Scopes that are asked for, beside `openid`.", string("One scope.", { format: "scope" }), {
      default: ["profile"],
    }),
    tenant: optional(
      string("Tenant of everybody who signs in. With `issuer`, either this or `tenant_claim`.", { format: "name" }),
    ),
    tenant_claim: optional(string("Claim that says the tenant, by the values of `tenants`.", { format: "claim" })),
    tenants: map(
      "Tenant for each value of `tenant_claim`. Who has another value, or none, cannot sign in.",
      "claim",
      string("The tenant, which must have a key.", { format: "name" }),
      { default: {} },
    ),
    role: optional(enumeration("Role of everybody who signs in. With `issuer`, either this or `role_claim`.", roles)),
    role_claim: optional(
      string("Claim that says the role, a text or a list of texts, by the values of `roles`.", { format: "claim" }),
    ),
    roles: map(
      "Role for each value of `role_claim`; of several, the strongest. Who has no value that is listed cannot sign in.",
      "claim",
      enumeration("The role.", roles),
      { default: {} },
    ),
    name_claim: string("Claim whose text the page shows as the person's name. Without it, the subject.", {
      format: "claim",
      default: "name",
    }),
  },
);

export const consoleSchema = object("The console of the metrics port, where people review.", {
  public_url: optional(
    string(
      "URL at which people reach the console, without a path, such as `https://console.example`. Its host and its origin are accepted there, its cookies go over https alone where it has that, and `approvals.review_url` leads there by default. Left out: `gateway console` opens it on this machine, and `approvals.review_url` leads to that.",
      { format: "url" },
    ),
  ),
  recent_sign_in_minutes: integer(
    "Age of a sign-in up to which it allows changes, such as a review. After it, people sign in again; until then they may read.",
    { minimum: 1, maximum: 720, default: 15 },
  ),
  oidc: oidcSchema,
});
