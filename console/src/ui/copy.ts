/** Copies a text, and reports whether that worked. Browsers give scripts a clipboard in secure
 * contexts only: over plain http a text field is selected and copied, as a person would. The
 * field is put beside the button, because a dialog makes the rest of the page inert. */
export async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // no clipboard, or no permission: the selection may do
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
