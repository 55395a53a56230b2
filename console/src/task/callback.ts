// The callback of a task: how its state is shown, and which of its attempts succeeded.
import type { Delivery, Task } from '../api/types';
import type { Tone } from '../ui';

export type CallbackState = NonNullable<Task['webhook']>['state'];

export const callbackStates: readonly CallbackState[] = ['pending', 'delivered', 'dropped', 'abandoned'];

/** The tone of a callback's badge. A dropped callback is a warning, because its address has to be corrected. The dropped
 * callback of a cancelled task is not: cancelled tasks have no callback. */
export function callbackTone({ webhook, status }: { webhook?: { state: CallbackState } | undefined; status: Task['status'] }): Tone {
  switch (webhook?.state) {
    case 'pending':
      return 'busy';
    case 'delivered':
      return 'good';
    case 'abandoned':
      return 'bad';
    case 'dropped':
      return status === 'cancelled' ? 'neutral' : 'warn';
    default:
      return 'neutral';
  }
}

/** Whether the receiver accepted the callback. An attempt has an error only if there was no response. Otherwise the
 * status decides, as it does for the service. */
export function wasTaken({ status }: Pick<Delivery, 'status'>): boolean {
  return status !== null && status >= 200 && status < 300;
}
