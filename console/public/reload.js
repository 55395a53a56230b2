// Loads the page again when a part of it is missing. During an update processes of two versions
// answer, and the page of one names files that the other does not have. This file's own name has
// no version, so that each process has it.
(() => {
  const name = 'mediagate.reloads';
  const [most, within] = [3, 60_000];
  let began = false;

  // Returns false where that was tried too often: a build may lack a file for ever.
  window.reloadPage = () => {
    if (began) return true;
    let made;
    try {
      made = JSON.parse(sessionStorage.getItem(name) ?? '[]').filter((at) => Date.now() - at < within);
      if (made.length >= most) return false;
      sessionStorage.setItem(name, JSON.stringify([...made, Date.now()]));
    } catch {
      return false; // no storage to count in
    }
    began = true;
    setTimeout(() => location.reload(), made.length * 1_000);
    return true;
  };

  // The page's own scripts and styles, without which nothing is shown. What comes later is loaded
  // by the application. A service that is away is waited for.
  const answers = () => fetch('/healthz').then((answer) => answer.ok, () => false);
  const again = async () => {
    while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, 1_000));
    window.reloadPage();
  };
  addEventListener('error', ({ target }) => {
    if (document.readyState === 'complete') return;
    if (target instanceof HTMLScriptElement || (target instanceof HTMLLinkElement && target.rel === 'stylesheet')) void again();
  }, true);
})();
