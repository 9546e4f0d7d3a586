select 1;
++ counter;
select 2;
