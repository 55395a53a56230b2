const latin = (bytes: Uint8Array) => String.fromCharCode(...bytes);

/** Whether a file starts like a JPEG, PNG, WebP or GIF. The first twelve bytes are enough. */
export function isPicture(head: Uint8Array): boolean {
  const text = latin(head);
  return /^(\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a)/.test(text) || (text.startsWith('RIFF') && text.slice(8, 12) === 'WEBP');
}
