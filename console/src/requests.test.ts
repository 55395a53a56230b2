import { beforeEach, expect, test, vi } from 'vitest';
import { draft, forgetRequests, forgetSpeech, keepDraft, keepSpeech, speechesOf } from './requests';

const speech = (at: number, data = 'AAAA') => ({ at, model: 'voice', text: 'hello', format: 'mp3', data });

// A storage with room for a number of characters.
function store(room: number): void {
  const kept = new Map<string, string>();
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => kept.get(name) ?? null,
    removeItem: (name: string) => kept.delete(name),
    setItem: (name: string, text: string) => {
      if (text.length > room) throw new Error('no room');
      kept.set(name, text);
    },
  });
}
beforeEach(() => store(10_000));

test('the last speeches of a model are kept, newest first', () => {
  for (let at = 1; at <= 6; at++) keepSpeech(speech(at));
  expect(speechesOf('voice').map((s) => s.at)).toEqual([6, 5, 4, 3]);
  forgetSpeech(5);
  expect(speechesOf('voice').map((s) => s.at)).toEqual([6, 4, 3]);
  expect(speechesOf('another')).toEqual([]);
});

test('older speeches make room, and what is typed stays', () => {
  keepDraft({ endpoint: '/v1/audio/speech', model: 'voice', body: { input: 'a' } });
  keepSpeech(speech(1, 'A'.repeat(6_000)));
  keepSpeech(speech(2, 'A'.repeat(6_000)));
  expect(speechesOf('voice').map((s) => s.at)).toEqual([2]);
  keepSpeech(speech(3, 'A'.repeat(20_000)));
  expect(speechesOf('voice')).toEqual([]);
  expect(draft()?.body).toEqual({ input: 'a' });
});

test('nothing outlives the session', () => {
  keepSpeech(speech(1));
  forgetRequests();
  expect(speechesOf('voice')).toEqual([]);
});

test('without a storage nothing fails', () => {
  store(0);
  keepSpeech(speech(1));
  expect(speechesOf('voice')).toEqual([]);
});
