// Whoever is on call finds a task that is parked, sees why, has it tried again with a
// reason, and it completes.
import {ask, must, until} from '../browser.mjs'

export default async ({come, base, key, admin}) => {
	const id = await ask('parked')
	const v = await come()
	const asked = []
	v.page.on('request', r => asked.push(new URL(r.url()).pathname))
	await v.signIn(admin)
	await v.holds(() => location.pathname === '/console/operator')
	await v.sees('Stuck tasks')
	await v.sees(id)
	// The menu and the line below the heading count the stuck tasks, also beside a filter that selects others.
	await v.holds(() => /Tasks\s+\d+ stuck/.test(document.querySelector('nav a.active').innerText))
	await v.holds(() => /\d+ stuck/.test(document.querySelector('.operator-strip').innerText))
	// The operator sees which installation this is, and its version.
	await v.holds(() => document.querySelector('.installation').innerText.startsWith(`${location.host} · version`))
	await v.inspect('stuck')
	must(!asked.includes('/admin/v1/ledger/check'), 'opening the page checks the ledger')
	await v.press('link', id)
	await v.sees('Timeline')
	await v.sees('submission_unknown')
	await v.inspect('story')
	await v.press('button', 'Retry')
	await v.holds(() => document.activeElement?.matches('dialog[open] input'))
	await v.fill('textbox', 'Reason', 'the vendor confirms that there is no job')
	await v.inspect('lever')
	await v.page.evaluate(() => document.querySelector('dialog[open] button[type=submit]').click())
	await v.holds(() => document.querySelector('.operator-now h2')?.innerText.includes('Completed'))
	await v.sees('the vendor confirms that there is no job')
	await v.go('/operator/audit')
	await v.sees(id)
	await v.go('/operator')
	await v.holds(id => !document.body.innerText.includes(id), id)

	// Many at once: a preview counts which of them the command would change, and which it would skip.
	const submit = async (path, body) => {
		const answer = await fetch(base + path, {method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: JSON.stringify({...body, metadata: {reference: 'drill'}})})
		must(answer.ok, `the submit: ${answer.status}`)
		return (await answer.json()).data[0].task_id
	}
	const ended = await submit('/v1/images/generations', {model: 'theta-image-turbo', prompt: 'a heron'})
	await until('the picture', async () => (await (await fetch(`${base}/admin/v1/tasks/${ended}`, {headers: {Authorization: `Bearer ${admin}`}})).json()).status === 'completed')
	for (let i = 0; i < 2; i++) await submit('/v1/videos/generations', {model: 'alpha-v3', prompt: 'a heron [[sandbox: duration=600s]]'})
	const dialog = text => document.querySelector('dialog[open]').innerText.includes(text)
	await v.go('/operator?stuck=all&reference=drill')
	await v.press('button', 'Bulk action')
	await v.choose('Action', 'fail', 'dialog[open]')
	await v.fill('textbox', 'Reason', 'a drill')
	await v.press('button', 'Preview')
	for (const text of ['3 tasks match.', '1 already ended']) await v.holds(dialog, text)
	await v.inspect('bulk')
	must(await v.page.evaluate(dialog, 'reference = drill'), 'the filter is not shown')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button')].find(b => b.innerText === 'Fail 2 tasks').click())
	await v.holds(dialog, 'Done')
	await v.holds(dialog, '2 done, 1 skipped (not applicable), 0 failed')

	// Now it would change nothing.
	await v.press('button', 'Close', 'dialog[open] .stack')
	await v.press('button', 'Bulk action')
	await v.choose('Action', 'fail', 'dialog[open]')
	await v.fill('textbox', 'Reason', 'a drill')
	await v.press('button', 'Preview')
	await v.holds(dialog, '3 already ended')
	must(!(await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button')].some(b => b.innerText.startsWith('Fail ')))), 'a job that changes nothing can be started')
	await v.leave()
}
