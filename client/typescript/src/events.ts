/** One server-sent event. */
export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

/** Reads server-sent events until the stream ends. An event that is cut off is none. */
export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it has broken off before
  }
}

function parse(block: string): ServerEvent | undefined {
  const event: ServerEvent = { id: '', name: 'message', data: '' };
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === 'id') event.id = value;
    if (field === 'event') event.name = value;
    if (field === 'data') data.push(value);
  }
  if (data.length === 0) return undefined;
  event.data = data.join('\n');
  return event;
}
