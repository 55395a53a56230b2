// Text written by others: prompts, names, lyrics, messages of vendors. It may have any length.
import { useState } from 'react';
import { Button } from '../ui';
import { words } from '../words';

export function Foreign({ text, limit = 600 }: { text: string; limit?: number }) {
  const [all, setAll] = useState(false);
  const long = text.length > limit;
  return (
    <div>
      <p className="foreign" dir="auto">
        {long && !all ? `${text.slice(0, limit)}…` : text}
      </p>
      {long && (
        <Button variant="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? words.task.less : words.task.all}
        </Button>
      )}
    </div>
  );
}
