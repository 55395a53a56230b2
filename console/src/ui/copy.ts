/** Copies a text, and reports whether that worked. Browsers give scripts the clipboard only in secure contexts. Over
 * plain http this function selects a text field and copies the selection. It puts the field beside the button, because
 * a dialog makes the rest of the page inert. */
export async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // no clipboard, or no permission: try the selection
  }
  const field = document.createElement('textarea');
  field.className = 'sr';
  field.value = text;
  button.after(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  button.focus();
  return copied;
}
