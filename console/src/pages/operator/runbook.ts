// Where the runbook is, which the API serves.

/** The page of the runbook about a reason: provider_out_of_funds is ProviderOutOfFunds. */
export function runbookOf(reason: string): string {
  const page = reason === 'run_overdue' ? 'WakesOverdue' : reason.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
  return `/docs/runbook/${page}`;
}
