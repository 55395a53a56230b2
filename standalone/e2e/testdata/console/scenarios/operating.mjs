// What an operator does on the second day: finds the tasks of a customer, stops the customer and lets
// them go on, grants much money, drains a channel, and reads in the audit who did what and why.
import {must, until} from '../browser.mjs'

export default async ({come, base, admin}) => {
	const send = async (method, path, body, key = admin) => {
		const answer = await fetch(base + path, {method, headers: {Authorization: `Bearer ${key}`}, body: body && JSON.stringify(body)})
		return {status: answer.status, body: await answer.json()}
	}
	const account = (await send('POST', '/admin/v1/accounts', {name: 'Initech & sons'})).body.id
	await send('POST', `/admin/v1/accounts/${account}/grants`, {amount: '5', reference: 'start'})
	const {key} = (await send('POST', `/admin/v1/accounts/${account}/keys`, {name: 'ci', unlimited: true})).body
	const submit = () => send('POST', '/v1/videos/generations', {model: 'alpha-v3', prompt: 'a stapler [[sandbox: duration=1s]]'}, key)
	const task = (await submit()).body.data[0].task_id
	const job = await until('the task completes', async () => {
		const {body} = await send('GET', `/admin/v1/tasks/${task}`)
		return body.status === 'completed' && body.attempts[0].vendor_job_id
	})
	const row = text => document.querySelector('.operator-oprows tbody')?.innerText.includes(text)

	// A task is found by the name of its account, by its own id, and by its vendor's.
	const v = await come()
	await v.signIn(admin)
	for (const search of ['initech', task, job]) {
		await v.go('/operator?stuck=all')
		await v.fill('searchbox', 'Search', search)
		await v.sees('1 task')
		await v.holds(row, task)
	}
	await v.holds(row, 'Initech & sons')
	await v.inspect('operator-search')
	await v.press('link', task)
	await v.holds(() => /:\d\d:\d\d/.test(document.querySelector('.operator-storylines time')?.innerText)) // with seconds

	// A task that its vendor refused says so at the head of its page, and on a phone no table is wider than the screen.
	const refusedTask = (await send('POST', '/v1/videos/generations', {model: 'alpha-v3', prompt: 'a stapler [[sandbox: fail=moderation]]', webhook: `${base}/nowhere`}, key)).body.data[0].task_id
	const story = await until('the task fails, and its callback is tried', async () => {
		const {body} = await send('GET', `/admin/v1/tasks/${refusedTask}`)
		return body.status === 'failed' && body.deliveries.length > 0 && body
	})
	await v.go(`/operator/tasks/${refusedTask}`)
	await v.holds(error => document.querySelector('.operator-now')?.innerText.includes(error), story.attempts[0].error)
	await v.page.setViewport({width: 390, height: 844})
	for (const to of [`/operator/tasks/${refusedTask}`, '/operator/books', '/operator/channels', '/operator/accounts']) {
		await v.go(to)
		await v.page.waitForSelector('.scroll.cards tbody tr')
		const wide = await v.page.evaluate(() => [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel))
		must(wide.length === 0, `${to}: on a phone these tables scroll sideways: ${wide}`)
	}
	await v.page.setViewport({width: 1440, height: 900})
	await v.go('/operator/accounts')
	// The link is followed before the search begins, and its page loads for longer than the search waits.
	await v.page.setRequestInterception(true)
	v.page.on('request', request => setTimeout(() => request.continue(), request.url().includes('/assets/OperatorAccount-') ? 1_000 : 0))
	await v.fill('searchbox', 'Search by name or ID', 'INITECH')
	await v.press('link', 'Initech & sons')
	await v.at('button', 'Suspend')
	v.page.removeAllListeners('request')
	await v.page.setRequestInterception(false)

	// Suspended, it makes nothing new; resumed, it goes on.
	await v.press('button', 'Suspend')
	await v.fill('textbox', 'Reason', 'does not pay')
	await v.inspect('suspend')
	await v.click('dialog[open] button[type=submit]')
	await v.sees('Initech & sons is suspended.')
	await v.inspect('suspended')
	const refused = await submit()
	must(refused.status === 403 && refused.body.error.type === 'permission_error', `a submit: ${refused.status} ${JSON.stringify(refused.body)}`)
	await v.press('button', 'Resume')
	await v.fill('textbox', 'Reason', 'has paid')
	await v.click('dialog[open] button[type=submit]')
	await v.sees('may submit again')
	await until('submits go on', async () => (await submit()).status === 200) // once what is known of the key is read anew

	// Much money is asked about before it is granted.
	const available = async () => Number((await send('GET', `/admin/v1/accounts/${account}`)).body.available)
	await v.press('button', 'Grant')
	await v.fill('textbox', 'Amount in USD', '1000.01')
	await v.click('dialog[open] button[type=submit]')
	await v.sees('That is more than')
	await v.inspect('grant')
	must(await available() < 1000, 'it is granted at once')
	await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] button')].find(b => b.innerText.startsWith('Yes, grant')).click())
	await until('the grant', async () => await available() > 1000)

	// A drain says why, beside the channel and in the audit.
	const spare = (await send('GET', '/admin/v1/channels?limit=100')).body.data.find(c => c.provider === 'veo').name // a second route of one model
	await v.go('/operator/channels')
	await v.press('button', `Drain ${spare}`)
	must(await v.page.evaluate(() => document.querySelector('dialog[open] button[type=submit]').disabled), 'a drain needs no reason')
	await v.fill('textbox', 'Reason', 'INC-7: results are black')
	await v.inspect('drain')
	await v.click('dialog[open] button[type=submit]')
	await v.sees(`${spare} is drained`)
	await v.sees('INC-7: results are black')
	await v.press('button', `Enable ${spare}`)
	await v.click('dialog[open] button[type=submit]')
	await v.sees(`${spare} takes new jobs again`)

	await v.go(`/operator/audit?account=${account}`)
	await v.choose('Action', 'change_account')
	await v.holds(() => location.search.includes('change_account') && document.querySelectorAll('.operator-oprows tbody tr').length === 2)
	await v.holds(row, 'does not pay')
	await v.holds(row, 'has paid')
	must(!(await v.page.evaluate(() => /[{}"\[\]]/.test(document.querySelector('.operator-oprows tbody').innerText))), 'the audit shows JSON')
	await v.inspect('audit-filtered')
	await v.go('/operator/audit')
	await v.fill('searchbox', 'Target', spare)
	await v.holds(row, 'INC-7: results are black')

	await v.go('/operator/books')
	await v.press('button', 'Check now')
	await v.sees('Ledger OK')
	await v.leave()
}
