// The number of stuck tasks in the menu. It is read again when the operator opens another page or comes back to the
// tab. A page that polls the number keeps it up to date; a page that shows nothing new asks for nothing.
import { useQuery } from '@tanstack/react-query';
import { Badge } from '../../ui';
import { words } from '../../words';
import { stuckCountQuery } from './queries';

export function StuckCount() {
  const { data: stuck = 0 } = useQuery(stuckCountQuery);
  return stuck > 0 && <Badge tone="warn">{words.shell.someStuck(stuck)}</Badge>;
}
