import { InvalidArgumentError } from "commander";

export const approvalsPath = "/admin/v1/approvals";

/** The id of an approval, or a mistake in the command line. */
export function parseApprovalId(text: string): string {
  if (/^apr_[0-9a-f]{32}$/.test(text)) return text;
  throw new InvalidArgumentError("expected an approval's id, like `apr_…`");
}
