// Whoever is on call finds a task that is parked, sees why, has it tried again with a
// reason, and it completes.
import {ask, must} from '../browser.mjs'

export default async ({come, admin}) => {
	const id = await ask('parked')
	const v = await come()
	const asked = []
	v.page.on('request', r => asked.push(new URL(r.url()).pathname))
	await v.signIn(admin)
	await v.holds(() => location.pathname === '/console/operator')
	await v.sees('Stuck tasks')
	await v.sees(id)
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

	// Many at once: they are counted first.
	await v.go('/operator?stuck=all&model=delta-02')
	await v.press('button', 'Bulk action')
	await v.fill('textbox', 'Reason', 'a drill')
	await v.press('button', 'Preview')
	await v.holds(() => /\d+ tasks? match/.test(document.querySelector('dialog[open]').innerText))
	await v.inspect('bulk')
	must(await v.page.evaluate(() => document.querySelector('dialog[open] pre').innerText.includes('model = delta-02')), 'the filter is not shown')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button')].find(b => /^Retry \d+ task/.test(b.innerText)).click())
	await v.holds(() => /Done[^]*skipped \(not applicable\)/.test(document.querySelector('dialog[open]').innerText))
	await v.leave()
}
