// The first visit of a customer: sign in, make a key, use it, and see a film play.
import {must} from '../browser.mjs'

export default async ({come, base, key}) => {
	const v = await come()
	v.expected.push(/401|400/) // the wrong key, and the field that is mended
	await v.go('')
	await v.holds(() => location.pathname === '/console/sign-in')
	await v.fill('textbox', 'API key', 'mgk_wrong')
	await v.press('button', 'Sign in')
	await v.page.waitForSelector('[role=alert]')
	await v.signIn(key)

	// A key of one's own, which is shown once and works.
	await v.press('link', 'Keys')
	await v.press('button', 'Create key')
	await v.fill('textbox', 'Name', 'my first key')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] label')].find(l => l.innerText.startsWith('Limited to')).click())
	await v.fill('textbox', 'Quota in USD', '50')
	await v.inspect('new-key')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button[type=submit]')].at(-1).click())
	const mine = await v.holds(() => /mgk_[0-9A-Za-z]{38}/.exec(document.querySelector('dialog[open]')?.innerText ?? '')?.[0])
	const answer = await fetch(base + '/v1/models', {headers: {Authorization: `Bearer ${mine}`}})
	must(answer.ok, `the new key: ${answer.status}`)
	await v.press('button', 'I have saved it')

	// With it, a film.
	await v.press('button', 'Sign out')
	await v.holds(() => location.pathname.endsWith('/sign-in'))
	await v.signIn(mine)
	await v.press('link', 'Playground')
	await v.page.waitForSelector('a[href*="model=alpha-v3"]')
	await v.inspect('models')
	await v.click('a[href*="model=alpha-v3"]')
	await v.fill('textbox', 'Prompt', 'a red boat drifts across a quiet lake at dawn [[sandbox: duration=4s]]')
	await v.holds(() => /leaves/.test(document.body.innerText)) // the price
	await v.press('button', 'Copy as code')
	await v.holds(() => document.querySelector('dialog[open] pre, pre')?.innerText.includes('/v1/videos/generations'))
	await v.page.keyboard.press('Escape')
	await v.press('button', 'Generate')
	await v.sees('Processing')
	await v.sees('Completed')
	const film = await v.page.waitForSelector('video')
	await film.evaluate(f => { f.muted = true; return f.play() })
	await v.holds(f => f.currentTime > 0.3, film)
	await film.evaluate(f => f.pause())
	await v.inspect('result')
	await v.leave()
}
