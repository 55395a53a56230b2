// Plain http under a name of a network, where browsers keep the clipboard and other things
// from scripts: a key that is shown once is copied all the same, and stays until its owner
// says so; a picture's button works.
import {must} from '../browser.mjs'

export default async ({come, key}) => {
	const v = await come()
	v.expected.push(/The Cross-Origin-Opener-Policy header has been ignored/)
	v.base = v.base.replace('127.0.0.1', 'mediagate.test') // see --host-resolver-rules
	await v.signIn(key)
	must(!(await v.page.evaluate(() => isSecureContext)), 'the browser takes the page for a secure context')

	await v.press('link', 'Keys')
	await v.press('button', 'Create key')
	await v.fill('textbox', 'Name', 'over plain http')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] label')].find(l => l.innerText.startsWith('Limited to')).click())
	await v.fill('textbox', 'Quota in USD', '50')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button[type=submit]')].at(-1).click())
	await v.holds(() => /mgk_[0-9A-Za-z]{38}/.test(document.querySelector('dialog[open]')?.innerText ?? ''))
	for (let i = 0; i < 3; i++) {
		await v.page.keyboard.press('Escape')
		await v.page.evaluate(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))))
	}
	must(await v.page.$('dialog[open] .keys-newsecret'), 'Escape closes the only view of the key')
	const copy = await v.page.waitForSelector('dialog[open] .codeblock button')
	await v.page.evaluate(() => { document.execCommand = () => false })
	await copy.click()
	await v.sees('Not copied')
	await v.page.evaluate(() => { delete document.execCommand })
	await copy.click()
	await v.sees('Copied')
	await v.press('button', 'I have saved it')
	await v.holds(() => !document.querySelector('dialog[open]'))

	// What was copied is the key.
	await v.press('button', 'Sign out')
	const field = await v.at('textbox', 'API key')
	await field.focus()
	await v.page.keyboard.press('v', {commands: ['Paste']})
	await v.press('button', 'Sign in')
	await v.holds(() => !location.pathname.endsWith('/sign-in'))

	await v.go('/playground?model=art')
	await v.fill('textbox', 'Prompt', 'a lighthouse at dusk [[sandbox: duration=1s]]')
	await v.press('button', 'Generate')
	await v.sees('Completed')
	const before = v.page.url()
	await v.click('.task-artgrid figure:first-child .task-artbuttons button')
	await v.holds(url => location.href !== url, before)
	await v.leave()
}
