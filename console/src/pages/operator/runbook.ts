// Addresses of the runbook, which the API serves.

/** The address of the page about a reason: for provider_out_of_funds it ends with ProviderOutOfFunds. */
export function runbookOf(reason: string): string {
  const page = reason === 'run_overdue' ? 'WakesOverdue' : reason.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
  return `/docs/runbook/${page}`;
}
