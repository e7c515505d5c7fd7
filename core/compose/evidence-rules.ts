import { approvalRule } from "../approval/evidence-rule.ts";
import type { RecordRules } from "../evidence/verify/record-rule.ts";
import { killRule } from "../kill/evidence-rule.ts";
import { ticketRule } from "../ticket/evidence-rule.ts";

/** The rules that every verification of evidence checks, of a running gateway, a data folder, a backup or a bundle. */
export const evidenceRules: RecordRules = [killRule, approvalRule, ticketRule];
