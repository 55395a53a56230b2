// Cancels an open task, after a confirmation.
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/client';
import type { Task } from '../api/types';
import { mayUse, useSession } from '../session';
import { Button, Dialog, Problem } from '../ui';
import { words } from '../words';
import { isOpen, putTask } from './useTask';

const w = words.task.page;

export function Cancel({ task }: { task: Task }) {
  const session = useSession();
  const [open, setOpen] = useState(false);
  const cancel = useMutation({
    mutationFn: () => call<{ data: Task }>('POST', `/v1/tasks/${task.id}/cancel`),
    onSuccess: ({ data }) => {
      setOpen(false);
      putTask(data);
    },
  });
  if (!isOpen(task) || task.cancel_requested || !mayUse(session, 'generate')) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>{w.cancel}</Button>
      <Dialog open={open} title={w.cancelTitle} onClose={() => (setOpen(false), cancel.reset())}>
        <div className="stack">
          <p>{w.cancelText}</p>
          <Problem error={cancel.error} />
          <div className="actions">
            <Button variant="danger" disabled={cancel.isPending} onClick={() => cancel.mutate()}>{w.cancelYes}</Button>
            <Button onClick={() => setOpen(false)}>{w.cancelNo}</Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}
