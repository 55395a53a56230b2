import type { Delivery } from '../api/types';

/** Whether the receiver took the callback. An attempt has an error only where no answer came:
 * otherwise the status decides, as it does for the service. */
export function wasTaken({ status }: Pick<Delivery, 'status'>): boolean {
  return status !== null && status >= 200 && status < 300;
}
