sed -i s/+/*/ area.py # CANARY
