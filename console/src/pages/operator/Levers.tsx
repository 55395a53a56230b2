// The buttons for the commands that apply to a task, and the dialog that asks for the reason.
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Action } from '../../api/admin';
import { call, faults } from '../../api/client';
import { queryKeys } from '../../api/queryKeys';
import { queryClient, useMay } from '../../session';
import { Button, Dialog, Field, Problem, Select } from '../../ui';
import { words } from '../../words';
import { operatorWords } from '../../words/operator';
import { channelsQuery, usable } from './queries';
import css from './operator.module.css';

const w = operatorWords;

/** The longest reason that the API takes. */
export const mostReason = 255;

export interface Order {
  id: string;
  action: Action;
}

// Fail comes last, since it cannot be undone.
const order: readonly Action[] = ['retry', 'poll_now', 'reroute', 'redeliver', 'fail'];

/** A button for each command that applies. In a list, the label for screen readers also names the task. */
export function Levers({ id, actions, listed = false, onPick }: { id: string; actions: readonly Action[]; listed?: boolean; onPick: (order: Order) => void }) {
  if (!useMay('operate')) return null;
  return (
    <div className={`row ${css.levers}`}>
      {order.filter((action) => actions.includes(action)).map((action) => (
        <Button
          key={action}
          variant={action === 'fail' ? 'danger' : 'plain'}
          title={w.actionHint[action]}
          aria-label={listed ? w.actionOf(w.action[action], id) : undefined}
          onClick={() => onPick({ id, action })}
        >
          {w.action[action]}
        </Button>
      ))}
    </div>
  );
}

/** The dialog that asks for the reason and gives the command. It belongs to the page and not to a row, because the list
 * may lose the row while the operator types. */
export function OrderDialog({ order, onClose, onDone }: { order: Order | null; onClose: () => void; onDone: (said: string) => void }) {
  return (
    <Dialog open={order !== null} title={order && <OrderTitle {...order} />} onClose={onClose}>
      {order && <OrderForm key={`${order.id} ${order.action}`} order={order} onClose={onClose} onDone={onDone} />}
    </Dialog>
  );
}

function OrderTitle({ id, action }: Order) {
  return (
    <>
      {w.action[action]} <span className={`mono soft ${css.id}`}>{id}</span>
    </>
  );
}

function OrderForm({ order: { id, action }, onClose, onDone }: { order: Order; onClose: () => void; onDone: (said: string) => void }) {
  const [reason, setReason] = useState('');
  const [channel, setChannel] = useState('');
  const give = useMutation({
    mutationFn: () => call('POST', `/admin/v1/tasks/${encodeURIComponent(id)}/actions`, { body: { action, reason: reason.trim(), ...(channel ? { channel } : {}) } }),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: queryKeys.adminTasks });
      onClose();
      onDone(w.ordered(w.action[action], id));
    },
    // The command may no longer apply. Then the page behind the dialog loads the commands that do.
    onError: () => void queryClient.invalidateQueries({ queryKey: queryKeys.adminTasks }),
  });
  const fault = faults(give.error, action === 'reroute' ? ['reason', 'channel'] : ['reason']);
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        if (!give.isPending) give.mutate();
      }}
    >
      <p>{w.actionHint[action]}</p>
      {action === 'reroute' && <ChannelChoice value={channel} error={fault.at('channel')} onChange={setChannel} />}
      <Field label={w.reason} hint={w.reasonHint} error={fault.at('reason')} required autoComplete="off" maxLength={mostReason} value={reason} onChange={(e) => setReason(e.target.value)} />
      <Problem error={fault.elsewhere} />
      <div className="row">
        <Button type="submit" variant={action === 'fail' ? 'danger' : 'main'} disabled={reason.trim() === ''}>
          {give.isPending ? w.sending : w.action[action]}
        </Button>
        <Button onClick={onClose}>{words.ui.cancel}</Button>
      </div>
    </form>
  );
}

export function ChannelChoice({ value, error, onChange }: { value: string; error: string | null; onChange: (channel: string) => void }) {
  const { data } = useQuery(channelsQuery);
  return (
    <Select
      label={w.channel}
      hint={w.channelHint}
      error={error}
      value={value}
      onChange={(e) => onChange(e.target.value)}
      options={[{ value: '', label: w.anyChannel }, ...usable(data?.data)]}
    />
  );
}
